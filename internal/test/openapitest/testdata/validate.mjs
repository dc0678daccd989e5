// Validates OpenAPI documents: validate.mjs FILE...
import { Validator } from "@seriousme/openapi-schema-validator";

for (const file of process.argv.slice(2)) {
  const result = await new Validator().validate(file);
  if (!result.valid) throw new Error(file + ": " + JSON.stringify(result.errors));
  console.log(file + ": OK");
}

/** What the client says is in the words of the client: who reads it knows no other door. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { operations } from "../src/types.js";

const folder = fileURLToPath(new URL("../../src/", import.meta.url));

/** The texts of the sources: literals with a blank. A part that is filled in is an ellipsis. */
const texts: { file: string; text: string }[] = [];
/** The names that the sources declare, and those of the environment that they read. */
const names = new Set<string>(Object.keys(operations));

for (const file of readdirSync(folder)) {
  const source = ts.createSourceFile(file, readFileSync(folder + file, "utf8"), ts.ScriptTarget.ES2022, true);
  const visit = (node: ts.Node, within: string[] | undefined): void => {
    let parts = within;
    if (ts.isTemplateExpression(node) || (ts.isBinaryExpression(node) && !parts)) parts = [];
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (parts) parts.push(node.text);
      else texts.push({ file, text: node.text });
      if (/^\w+$/.test(node.text)) names.add(node.text);
    }
    if (ts.isIdentifier(node) && (node.parent as ts.NamedDeclaration).name === node) names.add(node.text);
    ts.forEachChild(node, (child) => visit(child, parts));
    if (parts && parts !== within) texts.push({ file, text: parts.join(within ? "" : "...") });
  };
  visit(source, undefined);
}

const sentences = texts.filter(({ text }) => /[a-z] [a-z]/.test(text));

/** Commands, in backticks, with their flags. */
const commands = new Set(sentences.flatMap(({ text }) => text.match(/`interlock [^`]*`/g) ?? []));

test("the client says nothing in the words of another door", () => {
  const others =
    /\/v1\/|\b(?:GET|POST|PUT|PATCH|DELETE)\b|\bIf-(?:None-)?Match\b|\b[A-Z]\w+-[A-Z]\w+\b|\b[Hh]eader|\bBearer\b|\b[a-z]+(?:_[a-z]+)+\b| --\w|\binterlock \w/;
  /** Settings of an operator, and the answer to a request that no client sends. */
  const ofOperators = /\bwriter_queue\b|\beffect_retention\b|^use a method in the Allow header$/g;
  assert.ok(sentences.length > 150, `only ${sentences.length} sentences were found`);
  const found = sentences.flatMap(({ file, text }) => {
    const word = others.exec(text.replaceAll(/`interlock [^`]*`/g, "").replaceAll(ofOperators, ""));
    return word ? [`${file}: ${JSON.stringify(text)} has ${word[0]}`] : [];
  });
  assert.deepEqual(found, []);
});

test("what the client names exists", () => {
  const known = new Set([...names, "KiB"]);
  const found = sentences.flatMap(({ file, text }) =>
    (text.match(/\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*/g) ?? [])
      .filter((name) => !known.has(name))
      .map((name) => `${file}: ${JSON.stringify(text)} names ${name}`),
  );
  assert.deepEqual(found, []);
});

test("the commands that the client names exist", () => {
  const binary = process.env["INTERLOCK_BINARY"] ?? assert.fail("INTERLOCK_BINARY is not set");
  assert.ok(commands.size > 2, [...commands].join(", "));
  for (const command of commands) {
    const words = command.slice(1, -1).split(" ").slice(1);
    const verbs = words.slice(0, words.findIndex((word) => word.startsWith("-")) >>> 0);
    const help = execFileSync(binary, [...verbs, "--help"], { encoding: "utf8" });
    assert.match(help, new RegExp(`^(Usage:)?\\s*interlock ${verbs.join(" ")}\\b`, "im"), command);
    for (const flag of words.filter((word) => word.startsWith("--"))) assert.ok(help.includes(flag), command);
  }
});

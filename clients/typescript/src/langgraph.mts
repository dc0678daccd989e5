// ES modules and CommonJS share one build: an error of one is an instance of the class of the other.
export * from "./langgraph.js";

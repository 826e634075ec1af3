/** Property tests: the only place that imports fast-check. */
export { default as fc } from "fast-check";

import assert from "node:assert/strict";
import { expand, ExpressionError, shouldRun } from "./expressions.ts";

const CONTEXT = {
  github: { sha: "abc" },
  secrets: { TOKEN: "hidden" },
  steps: { build: { outputs: { version: "1.2" } } },
};

Deno.test("expand() replaces references and leaves other text alone", () => {
  assert.equal(expand("v${{ steps.build.outputs.version }}-${{github.sha}}", CONTEXT), "v1.2-abc");
  assert.equal(expand("${{ secrets.token }} ${{ github.nothing }}.", CONTEXT), "hidden .");
  assert.equal(expand("$x {{ y }} ${{ 'literal' }}", CONTEXT), "$x {{ y }} literal");
});

Deno.test("expand() says what it does not know", () => {
  assert.throws(() => expand("${{ github.sha == 'abc' }}", CONTEXT), ExpressionError);
  assert.throws(() => expand("${{ hashFiles('x') }}", CONTEXT), ExpressionError);
});

Deno.test("shouldRun() follows the status functions", () => {
  assert.equal(shouldRun(undefined, "success"), true);
  assert.equal(shouldRun(undefined, "failure"), false);
  assert.equal(shouldRun("always()", "cancelled"), true);
  assert.equal(shouldRun("${{ failure() }}", "failure"), true);
  assert.equal(shouldRun("!cancelled()", "failure"), true);
  assert.equal(shouldRun("false", "success"), false);
  assert.throws(() => shouldRun("github.ref == 'x'", "success"), ExpressionError);
});

import assert from "node:assert/strict";
import { z } from "@hono/zod-openapi";
import { schemaOf } from "./schema_of.ts";

interface View {
  readonly name: string;
  readonly list: readonly { readonly n: number | null }[];
}

Deno.test("schemaOf() compiles for the same shape and for no other", () => {
  const same = z.object({
    name: z.string(),
    list: z.array(z.object({ n: z.number().nullable() })),
  });
  assert.equal(schemaOf<View>()(same), same);
  // @ts-expect-error -- a field is missing
  schemaOf<View>()(z.object({ name: z.string() }));
  // @ts-expect-error -- a field is too many
  schemaOf<View>()(same.extend({ more: z.string() }));
  // @ts-expect-error -- null is lost in the depth
  schemaOf<View>()(same.extend({ list: z.array(z.object({ n: z.number() })) }));
  // @ts-expect-error -- a field is optional here and is not there
  schemaOf<View>()(same.extend({ name: z.string().optional() }));
});

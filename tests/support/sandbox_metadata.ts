import assert from "node:assert/strict";

/** Takes one metadata key off a sandbox of a real opensandbox-server, as somebody with its API key can. */
export async function removeMetadata(
  { url, apiKey }: { readonly url: string; readonly apiKey: string },
  id: string,
  key: string,
): Promise<void> {
  const response = await fetch(`${url}/v1/sandboxes/${id}/metadata`, {
    method: "PATCH",
    headers: { "open-sandbox-api-key": apiKey, "content-type": "application/json" },
    body: JSON.stringify({ [key]: null }),
    signal: AbortSignal.timeout(10_000),
  });
  assert.equal(response.status, 200, await response.text());
}

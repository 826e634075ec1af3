import assert from "node:assert/strict";
import { createFrameReader } from "./nats_proxy_frames.ts";
import { fc } from "./property.ts";

const WIRE = new TextEncoder().encode([
  'CONNECT {"verbose":false}\r\n',
  "PUB a.b 5\r\nhello\r\n",
  "PUB a.b _INBOX.1 0\r\n\r\n",
  "HPUB c _INBOX.2 12 17\r\nNATS/1.0\r\n\r\nworld\r\n",
  "MSG d 9 $JS.ACK.x 2\r\nok\r\n",
  "HMSG _INBOX.2 9 12 14\r\nNATS/1.0\r\n\r\nup\r\n",
  "PING\r\n",
].join(""));

const FRAMES = [
  ["other", "", "", ""],
  ["publish", "a.b", "", "hello"],
  ["publish", "a.b", "_INBOX.1", ""],
  ["publish", "c", "_INBOX.2", "world"],
  ["message", "d", "$JS.ACK.x", "ok"],
  ["message", "_INBOX.2", "", "up"],
  ["other", "", "", ""],
];

Deno.test("createFrameReader() gives the same frames however the bytes were cut", () => {
  const cuts = fc.array(fc.integer({ min: 0, max: WIRE.length }), { maxLength: 12 });
  fc.assert(fc.property(cuts, (places) => {
    const reader = createFrameReader();
    const borders = [0, ...places.toSorted((a, b) => a - b), WIRE.length];
    const frames = borders.slice(1).flatMap((end, i) =>
      reader.push(WIRE.subarray(borders[i], end))
    );
    assert.deepEqual(frames.map((f) => [f.kind, f.subject, f.reply, f.text]), FRAMES);
    const bytes = frames.flatMap(({ raw }) => [...raw]);
    assert.deepEqual(bytes, [...WIRE]);
  }));
});

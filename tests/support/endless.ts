/** A body without end, as fast as it is read. */
export function endless(): ReadableStream<Uint8Array<ArrayBuffer>> {
  const chunk = new Uint8Array(2 ** 20);
  return new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
}

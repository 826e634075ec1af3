/** What a handler answers for something that nothing here knows (any more). */
export interface Absent {
  readonly kind: "absent";
  readonly detail: string;
}

/** Of an address: it may say anything, and no id is longer. */
const MAX_NAME = 200;

/** No such assignment, or one that is older than the events. */
export function absentAssignment(id: string): Absent {
  return absent(`Look for another assignment: "${cut(id)}" is not known (any more)`);
}

/** No such backend, or one that is not enabled. */
export function absentBackend(name: string): Absent {
  return absent(`Enable the backend in COMPONENTS: "${cut(name)}" does not run here`);
}

/** No such operation. */
export function absentOperation(id: string): Absent {
  return absent(`Look for another operation: "${cut(id)}" is not known`);
}

function absent(detail: string): Absent {
  return { kind: "absent", detail };
}

function cut(text: string): string {
  return text.slice(0, MAX_NAME);
}

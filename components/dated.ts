/** What the data of every page has: when it was read, and where the event stream stood then. */
export interface Dated {
  /** When it was read, RFC 3339 UTC. */
  readonly at: string;
  /** The events up to this one are in it. */
  readonly lastEventId: string;
}

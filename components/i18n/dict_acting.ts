import type { ReleaseTier, StrangerTier } from "../../controller/actions/action_kinds.ts";
import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import type { Plural } from "./dict.ts";

/** Texts of what operators do; a part of `Dict`. */
export interface ActingDict {
  signIn: {
    title: string;
    /** `{host}` */
    provider: string;
    token: string;
    submit: string;
    out: string;
    /**
     * `{host}` of the provider, `{name}` of who came from there, `{count}` attempts, `{seconds}` until the
     * next one
     */
    faults: { token: string; provider: string; role: string; slow: string; here: string };
  };
  acting: {
    title: string;
    note: string;
    notePlaceholder: string;
    viewer: string;
    /** `{action}` */
    admin: string;
    elsewhere: string;
    cordon: string;
    cordonText: string;
    drain: string;
    drainText: string;
    minutes: string;
    minutesHint: string;
    hold: string;
    undo: string;
    undoText: string;
    resume: string;
    resumeText: string;
    capacity: string;
    capacityText: string;
    slots: string;
    configuredCapacity: string;
    promote: string;
    promoteText: string;
    demote: string;
    demoteText: string;
    configuredLabel: string;
    retry: string;
    cancel: string;
    release: string;
    stepDown: string;
    stepDownText: string;
    stepDownRunning: Plural;
    noElection: string;
    confirm: string;
  };
  refused: { title: string; current: string; back: string };
  stranger: {
    title: string;
    noJob: string;
    about: Record<StrangerTier, string>;
    fate: Record<StrangerTier, readonly string[]>;
    buttons: Record<StrangerTier, string>;
  };
  release: {
    title: string;
    cancelTitle: string;
    affected: string;
    back: string;
    job: string;
    refused: string;
    over: string;
    tiers: Record<ReleaseTier, string>;
    about: Record<ReleaseTier, string>;
    buttons: Record<ReleaseTier, string>;
    confirm: string;
    gitea: Record<ReleasePreview["gitea"]["when"], string>;
    slot: Record<ReleasePreview["slot"], string>;
    executor: Record<ReleasePreview["executor"]["fate"], string>;
    identity: string;
    message: Record<ReleasePreview["message"], string>;
    unnamed: string;
    changed: string;
  };
}

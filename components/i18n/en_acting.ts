import type { ActingDict } from "./dict_acting.ts";

/** English, what operators do. */
export const enActing: ActingDict = {
  signIn: {
    title: "Sign in",
    provider: "Sign in with {host}",
    token: "Token",
    submit: "Sign in with this token",
    out: "Sign out",
    faults: {
      token:
        "This token is not one of ADMIN_TOKENS: check that all of it was pasted, or ask an admin for one.",
      provider:
        'Signing in with {host} has failed. Try again; if it stays so, the log says why ("sign-in refused").',
      role:
        "{host} knows you as {name}, but none of your groups has a role here: ask an admin to map " +
        "one in OIDC_ROLE_MAP, then sign in again.",
      slow: "More than {count} attempts from your address: wait {seconds} s, then try again.",
      here:
        "You are signed out in this browser and at this replica. NATS does not answer, so the other " +
        "replicas are told as soon as it does. Until then, or if this replica ends before, they still take " +
        "a copy of the session's cookie, eight hours at most. If somebody may have one: a changed " +
        "ADMIN_TOKENS or OIDC_ROLE_MAP ends all sessions at the next start.",
    },
  },
  acting: {
    title: "Actions",
    note: "Note",
    notePlaceholder: "why; it goes into the audit",
    viewer: "You may look at everything; acting needs the role operator.",
    admin: "{action}: this needs the role admin.",
    elsewhere: "This replica is a standby: actions are taken by the leader, {leader}.",
    cordon: "Cordon",
    cordonText:
      "Takes nothing new: the label is withdrawn at Gitea, stored jobs wait, running ones go on.",
    drain: "Drain",
    drainText:
      "Takes nothing new, lets stored jobs finish, and waits until nothing runs. Nothing is destroyed when the deadline passes.",
    minutes: "Deadline in minutes",
    minutesHint: "none",
    hold: "Hold stored jobs instead of letting them finish",
    undo: "Undo the drain",
    undoText: "Puts back what this drain has set: the label returns and jobs are fetched at once.",
    resume: "Resume",
    resumeText: "Lifts cordon and drain: the label returns and jobs are fetched at once.",
    capacity: "Change capacity",
    capacityText:
      "Running jobs keep their slots when it becomes less; no new one starts until there are free ones.",
    slots: "Slots",
    configuredCapacity: "Back to the configured {n}",
    promote: "Promote to vm",
    promoteText:
      "Declares vm at Gitea: production jobs come here from now on. Stored jobs of either label still run.",
    demote: "Back to vm-dev",
    demoteText:
      "Declares vm-dev at Gitea: jobs for vm stay pending there. Stored jobs of either label still run.",
    configuredLabel: "Back to the configured {label}",
    retry: "Retry now",
    cancel: "Cancel…",
    release: "Release…",
    stepDown: "Step down",
    stepDownText:
      "This process gives the Lease back and ends; another replica takes over within seconds. Running jobs go on and are found again.",
    stepDownRunning: { one: "{n} job runs now.", other: "{n} jobs run now." },
    noElection: "Without an elector nobody would take over: stop the process instead.",
    confirm: "Confirm: {action}",
  },
  refused: {
    title: "Nothing was done",
    current: "This is how it stands now:",
    back: "Look again",
  },
  stranger: {
    title: "Release executor {name}",
    noJob: "No job of ours is known to be in it; it may be running one all the same.",
    about: {
      forced: "Delete it.",
      forget: "Let it be, and count it no more. For a backend that is gone.",
    },
    fate: {
      forced: [
        "Gitea: nothing is told; a job that runs in it ends when its runner falls silent.",
        "Slot: given back when the backend says that the executor is gone.",
        "Executor: exactly this one is deleted, by its UID.",
      ],
      forget: [
        "Gitea: nothing is told.",
        "Slot: given back at once, although the executor may still run. More may run than there are slots.",
        "Executor: it stays, and stays on the page.",
      ],
    },
    buttons: { forced: "Delete the executor", forget: "Forget the executor" },
  },
  release: {
    title: "Release {job}",
    cancelTitle: "Cancel {job}",
    affected: "Affected",
    back: "Leave it as it is",
    job: "Job",
    refused: "Not possible now",
    over: "Nothing is left of this job: there is nothing to give up.",
    tiers: { graceful: "Graceful", forced: "Forced", forget: "Forget" },
    about: {
      graceful: "Cancel, and wait for its end.",
      forced: "Fail it at Gitea now, delete its executor, free its slot.",
      forget: "As forced, but without waiting for the backend. For a backend that is gone.",
    },
    buttons: {
      graceful: "Cancel the job",
      forced: "Fail the job and delete its executor",
      forget: "Forget the executor",
    },
    confirm: "Type {id} to forget it",
    gitea: {
      ended_already: "Gitea: the job has ended already, and that stays as it is.",
      at_once: "Gitea: the job ends as {result}, at once, with your note in its log.",
      when_its_runner_has_ended:
        "Gitea: its runner is told to end, cleans up and reports the end; after 2 minutes it is ended from here.",
    },
    slot: {
      none: "Slot: it holds none.",
      freed_at_once:
        "Slot: given back at once, although the executor may still run. More may run than there are slots.",
      freed_when_executor_gone: "Slot: given back when the backend says that the executor is gone.",
      freed_when_job_ends: "Slot: given back when the job has ended.",
    },
    executor: {
      none: "Executor: there is none.",
      ends_by_itself: "Executor: {name} ends by itself and is deleted.",
      deleted: "Executor: {name} is deleted.",
      deleted_when_possible: "Executor: {name} is deleted as soon as its backend can do it.",
    },
    identity: "Identity: its SPIFFE identity entry is deleted with the executor.",
    message: {
      none: "Queue: it is not there any more.",
      removed: "Queue: its message is taken out.",
    },
    unnamed: "what is being made for it",
    changed:
      "If the job changes before you press a button, nothing is done and you see what has changed.",
  },
};

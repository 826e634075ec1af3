import type { BackendView, OperationView } from "../controller/views/views.ts";
import { ActionPanel, Step } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import { fill, number, useLang } from "./lang.ts";

/** What operators do with a backend; only what fits to how it stands. */
export function BackendActions(
  { backend, acting, operations }: {
    backend: BackendView;
    acting: Acting;
    operations: readonly OperationView[];
  },
) {
  const lang = useLang();
  const { acting: text } = lang.dict;
  const to = (kind: string) => `/actions/backends/${backend.name}/${kind}`;
  const drain = operations.find(({ action, state }) => action === "drain" && state !== "undone");
  const closed = backend.cordoned !== null || backend.drain !== null;
  const { capacity } = backend.overrides;
  return (
    <ActionPanel acting={acting}>
      {backend.drain === null || drain === undefined ? null : (
        <Step
          name="undo"
          path={`/actions/operations/${encodeURIComponent(drain.id)}/undo`}
          title={text.undo}
          about={text.undoText}
          acting={acting}
        />
      )}
      {closed
        ? (
          <Step
            name="resume"
            path={to("resume")}
            title={text.resume}
            about={text.resumeText}
            acting={acting}
          />
        )
        : null}
      {closed ? null : (
        <Step
          name="cordon"
          path={to("cordon")}
          title={text.cordon}
          about={text.cordonText}
          acting={acting}
        />
      )}
      {backend.drain !== null ? null : (
        <Step
          name="drain"
          path={to("drain")}
          title={text.drain}
          about={text.drainText}
          acting={acting}
        >
          <label class="field">
            <span>{text.minutes}</span>
            <input
              name="minutes"
              inputMode="numeric"
              pattern="[0-9]{0,6}"
              autocomplete="off"
              placeholder={text.minutesHint}
            />
          </label>
          <label class="check">
            <input type="checkbox" name="hold" /> {text.hold}
          </label>
        </Step>
      )}
      <Step
        name="capacity"
        needs="admin"
        path={to("capacity")}
        title={text.capacity}
        about={text.capacityText}
        acting={acting}
      >
        <label class="field">
          <span>{text.slots}</span>
          <input
            name="capacity"
            inputMode="numeric"
            pattern="[0-9]{1,5}"
            required
            autocomplete="off"
            placeholder={number(lang, backend.capacity)}
          />
        </label>
      </Step>
      {capacity === null ? null : (
        <Step
          name="configured"
          needs="admin"
          path={to("capacity")}
          title={fill(text.configuredCapacity, { n: number(lang, capacity.replaced) })}
          about={text.capacityText}
          acting={acting}
          fields={[["capacity", ""]]}
        />
      )}
    </ActionPanel>
  );
}

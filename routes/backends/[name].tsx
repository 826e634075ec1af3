import { BackendPage } from "../../components/BackendPage.tsx";
import { GROUPS } from "../../components/board.ts";
import { BACKENDS } from "../../controller/model/ids.ts";
import { actingOn } from "../../web/actions/acting_on.ts";
import { absentBackend } from "../../web/absent.ts";
import { whenAway } from "../../web/away.ts";
import { definePage } from "../../web/define.ts";
import { oneOf } from "../../web/list_page.ts";

const WAITING = 20;
const RUNNING = 500;
const OPERATIONS = 20;

/** One backend: slots, waiting jobs, failures, the last hour, what operators have set. */
export default definePage({
  path: "/backends/:name",
  async handler(context) {
    const { views, param } = context;
    const name = oneOf(BACKENDS, param("name"));
    const [backend, hour] = name === undefined ? [] : [views.backend(name), views.hour(name)];
    if (name === undefined || backend === undefined || hour === undefined) {
      return absentBackend(param("name"));
    }
    const first = { cursor: null, backend: name };
    const [waiting, running, operations] = await Promise.all([
      views.assignments({ ...first, limit: WAITING, states: GROUPS.waiting }),
      views.assignments({ ...first, limit: RUNNING, states: GROUPS.running }),
      // Without them the page still says how the backend is.
      views.operations({ cursor: null, limit: OPERATIONS, target: name })
        .catch(whenAway({ items: [] })),
    ]);
    return {
      kind: "found",
      data: {
        backend,
        hour,
        waiting: { items: waiting.items, total: waiting.total },
        running: running.items,
        operations: operations.items,
        acting: actingOn(context, name),
      },
    };
  },
  title: ({ backend }) => `${backend.name} ${backend.used}/${backend.capacity}`,
  component: BackendPage,
  island: "backend",
  json: (data) => data,
});

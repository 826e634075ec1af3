import { HistoryPage } from "../components/HistoryPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

// Each reading goes through the events stream; few events change no row of a job.
mount(refetching(HistoryPage, ["assignment"], { idleMs: 30_000 }));

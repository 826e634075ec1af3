import { AuditPage } from "../components/AuditPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

// Each reading goes through the whole audit; what was refused has no event.
mount(refetching(AuditPage, ["operation"], { idleMs: 30_000 }));

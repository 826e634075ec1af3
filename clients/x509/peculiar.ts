/** `@peculiar/x509` with what it needs in place first. Import it from here only. */
import "./reflect_metadata.ts";
export * from "@peculiar/x509";

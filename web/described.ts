import type { DescribedField, DescribedOperation } from "../components/ApiPage.tsx";
import { isObject, objectOrEmpty } from "../lib/json_object.ts";

/** Operations of an OpenAPI document, reads before actions; what it does not say is "". Pure. */
export function operationsOf(document: unknown): readonly DescribedOperation[] {
  const operations = Object.entries(objectOrEmpty(objectOrEmpty(document).paths))
    .flatMap(([path, item]) =>
      Object.entries(objectOrEmpty(item)).map(([method, operation]) =>
        describe(method.toUpperCase(), path, objectOrEmpty(operation))
      )
    );
  return operations.toSorted((a, b) =>
    a.method.localeCompare(b.method) || a.path.localeCompare(b.path)
  );
}

function describe(
  method: string,
  path: string,
  operation: Readonly<Record<string, unknown>>,
): DescribedOperation {
  const parameters = Array.isArray(operation.parameters) ? operation.parameters : [];
  const json = objectOrEmpty(
    objectOrEmpty(objectOrEmpty(operation.requestBody).content)[JSON_TYPE],
  );
  return {
    method,
    path,
    summary: text(operation.summary),
    description: text(operation.description),
    fields: [
      ...parameters.filter(isObject).map((one) =>
        field(text(one.name), { ...one, ...objectOrEmpty(one.schema) }, {
          where: text(one.in),
          required: one.required === true,
        })
      ),
      ...bodyFields(objectOrEmpty(json.schema)),
    ],
    answers: Object.entries(objectOrEmpty(operation.responses)).map(([status, answer]) => ({
      status,
      description: text(objectOrEmpty(answer).description),
    })),
  };
}

const JSON_TYPE = "application/json";

function bodyFields(schema: Readonly<Record<string, unknown>>): DescribedField[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(objectOrEmpty(schema.properties)).map(([name, one]) =>
    field(name, objectOrEmpty(one), { where: "body", required: required.includes(name) })
  );
}

function field(
  name: string,
  schema: Readonly<Record<string, unknown>>,
  { where, required }: { readonly where: string; readonly required: boolean },
): DescribedField {
  const { type, enum: values, description } = schema;
  return {
    ...{ name, where, required },
    type: Array.isArray(values)
      ? values.map(String).join(" | ")
      : Array.isArray(type)
      ? type.map(String).join(" | ")
      : text(type),
    description: text(description),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

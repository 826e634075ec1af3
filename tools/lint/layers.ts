import { importProblem, mayExportDefault, mayReadEnvironment } from "./table.ts";

/**
 * `deno lint` plugin of this repository: layers, one folder per npm package, and the habits that the
 * built-in rules do not know. Local file, no dependency, so it works offline. A line that must differ
 * says why: `// deno-lint-ignore gdr/<rule> -- reason`.
 */
const plugin: Deno.lint.Plugin = {
  name: "gdr",
  rules: {
    "layers": { create: layers },
    "default-export": { create: defaultExport },
    "enum": { create: enumeration },
    "environment": { create: environment },
    "non-null": { create: nonNull },
    "double-cast": { create: doubleCast },
    "exported-function": { create: exportedFunction },
    "abort-listener": { create: abortListener },
  },
};
export default plugin;

const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);
/** Two arguments and options are the habit; a fourth may inject defaults; here it stops. */
const MAX_PARAMETERS = 4;

function pathOf(context: Deno.lint.RuleContext): string {
  return context.filename.startsWith(ROOT) ? context.filename.slice(ROOT.length) : context.filename;
}

function layers(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const file = pathOf(context);
  const check = (source: Deno.lint.Node | null | undefined) => {
    if (source?.type !== "Literal" || typeof source.value !== "string") return;
    const message = importProblem(file, source.value);
    if (message !== undefined) context.report({ node: source, message });
  };
  return {
    ImportDeclaration: (node) => check(node.source),
    ExportAllDeclaration: (node) => check(node.source),
    ExportNamedDeclaration: (node) => check(node.source),
    ImportExpression: (node) => check(node.source),
  };
}

function defaultExport(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  if (mayExportDefault(pathOf(context))) return {};
  const message = "Export by name: default exports are for routes/ and islands/";
  return {
    ExportDefaultDeclaration: (node) => context.report({ node, message }),
    ExportSpecifier(node) {
      if (node.exported.type === "Identifier" && node.exported.name === "default") {
        context.report({ node, message });
      }
    },
  };
}

function enumeration(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const message = "Use a union of literals, or a union of objects tagged by `kind`, for an enum";
  return { TSEnumDeclaration: (node) => context.report({ node, message }) };
}

function environment(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  if (mayReadEnvironment(pathOf(context))) return {};
  const message = "Take the value as an argument: only the composition root reads the environment";
  return {
    MemberExpression(node) {
      const { object, property } = node;
      if (
        object.type === "Identifier" && (object.name === "Deno" || object.name === "process") &&
        property.type === "Identifier" && property.name === "env"
      ) {
        context.report({ node, message });
      }
    },
  };
}

function nonNull(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const message = "Check for the missing value, or make it impossible, in place of `!`";
  return { TSNonNullExpression: (node) => context.report({ node, message }) };
}

function doubleCast(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  const message = "Parse or narrow the value in place of casting it twice";
  return {
    TSAsExpression(node) {
      if (node.expression.type === "TSAsExpression") context.report({ node, message });
    },
  };
}

function exportedFunction(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  return {
    ExportNamedDeclaration(node) {
      const declaration = node.declaration;
      if (declaration?.type === "FunctionDeclaration") {
        const count = declaration.params.length;
        if (count > MAX_PARAMETERS) {
          const message = `Take two arguments, then options: this exported function has ${count}`;
          context.report({ node: declaration, message });
        }
      }
      if (declaration?.type === "VariableDeclaration") {
        for (const { init } of declaration.declarations) {
          if (init?.type !== "ArrowFunctionExpression") continue;
          context.report({ node: init, message: "Export a function with the word `function`" });
        }
      }
    },
  };
}

/** Of all that is awaited, what never comes because the event was over is the hardest to find. */
function abortListener(context: Deno.lint.RuleContext): Deno.lint.LintVisitor {
  if (pathOf(context) === "lib/abortable.ts") return {};
  const message =
    "Use `onAbort()` or `abortable()` of lib/abortable.ts: a listener that is added " +
    "after the abort is never called";
  return {
    CallExpression(node) {
      const { callee, arguments: [event] } = node;
      const member = callee.type === "ChainExpression" ? callee.expression : callee;
      if (
        member.type === "MemberExpression" && member.property.type === "Identifier" &&
        member.property.name === "addEventListener" &&
        event?.type === "Literal" && event.value === "abort"
      ) {
        context.report({ node, message });
      }
    },
  };
}

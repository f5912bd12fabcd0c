// z3 in a worker of its own: a script goes in, what z3 answers comes out. Ending the worker ends z3, which is how a time
// is limited: z3's own timer needs a thread, which cannot start while this one waits for an answer.
"use strict";
importScripts("z3-solver/z3-built.js");

const started = initZ3({ locateFile: (name) => `z3-solver/${name}`, mainScriptUrlOrBlob: "z3-solver/z3-built.js" });

function ask(z3, script) {
  const config = z3.ccall("Z3_mk_config", "number", [], []);
  const context = z3.ccall("Z3_mk_context", "number", ["number"], [config]);
  z3.ccall("Z3_del_config", null, ["number"], [config]);
  const answer = z3.ccall("Z3_eval_smtlib2_string", "string", ["number", "string"], [context, script]);
  z3.ccall("Z3_del_context", null, ["number"], [context]);
  return answer.trim();
}

started.then(() => postMessage({ ready: true }), (error) => postMessage({ error: String(error?.message ?? error) }));

onmessage = async ({ data: script }) => {
  try {
    const z3 = await started;
    const begun = performance.now();
    const answer = ask(z3, script);
    postMessage({ answer, taken: performance.now() - begun });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};

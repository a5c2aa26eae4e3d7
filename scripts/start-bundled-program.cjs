/**
 * What `node` is given to run a program that scripts/bundle-programs.js has bundled: a copy of this file stands beside each. It
 * runs the program with the code that V8 compiled of it for an earlier process, as dist/start.cjs does with the bridge.
 */
'use strict';
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');

/** By then a program has started; what it compiles later is little. */
const STARTED_MS = 300;

const program = __filename.replace(/\.cjs$/, '.program.cjs');
// What a program needs differs with its first word: the transport that it speaks.
const [word = ''] = /^[\w-]+$/.exec(process.argv[2] ?? '') ?? [];
const codeFile = `${program}.${word}.code`;
const cachedData = readIfThere(codeFile);
const script = new Script(wrap(readFileSync(program, 'utf8')), { filename: program, cachedData });
if (cachedData === undefined) setTimeout(keepCode, STARTED_MS).unref();
const module_ = { exports: {} };
script.runInThisContext()(module_.exports, createRequire(program), module_, __filename, dirname(__filename));

/** Whole at once: others may read it meanwhile. */
function keepCode() {
  const draft = `${codeFile}.${process.pid}`;
  writeFileSync(draft, script.createCachedData());
  renameSync(draft, codeFile);
}

function readIfThere(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

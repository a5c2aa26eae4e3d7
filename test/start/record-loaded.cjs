/** Preloaded into the program: appends the names of modules of Node and of files of the program to a file as they are loaded. */
'use strict';
const { appendFileSync } = require('node:fs');
const Module = require('node:module');
const { basename } = require('node:path');
const vm = require('node:vm');

const record = (name) => appendFileSync(process.env.LOADED_FILES, `${name}\n`);

const load = Module._load;
Module._load = function recordLoaded(name, ...given) {
  if (Module.isBuiltin(name)) record(name.replace(/^(?:node:)?/, 'node:'));
  return load.call(this, name, ...given);
};
vm.Script = class extends vm.Script {
  constructor(source, options) {
    record(basename(options.filename));
    super(source, options);
  }
};

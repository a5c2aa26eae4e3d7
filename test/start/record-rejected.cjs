/** Preloaded into the program: appends the names of its files that were compiled, since no saved code could be reused. */
'use strict';
const { appendFileSync } = require('node:fs');
const { basename } = require('node:path');
const vm = require('node:vm');

vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    if (this.cachedDataRejected !== false)
      appendFileSync(process.env.COMPILED_FILES, `${basename(options.filename)}\n`);
  }
};

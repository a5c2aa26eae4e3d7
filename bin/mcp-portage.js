#!/usr/bin/env node
// CommonJS, as the program is: to set up Node's loader of ES modules takes a tenth of a cold start.
function load() {
  try {
    return require('../dist/start.cjs');
  } catch (error) {
    if (error?.code !== 'MODULE_NOT_FOUND' || !error.message.includes('/dist/start.cjs')) throw error;
    console.error(
      'mcp-portage is not built: dist/ is missing. In a clone run `npm ci`, which builds it, or `npm run build`.',
    );
    process.exitCode = 70;
    return undefined;
  }
}

/** Older ones end with a stack trace of somebody else. */
const OLDEST_MAJOR = 20;

if (Number.parseInt(process.versions.node, 10) < OLDEST_MAJOR) {
  console.error(
    `mcp-portage needs Node 20.19 or newer; this is ${process.version}, ${process.execPath}. Update it, or put the folder ` +
      'of a newer one first in PATH: in the settings of the client, where a client starts this.',
  );
  process.exitCode = 70;
} else {
  load()?.start();
}

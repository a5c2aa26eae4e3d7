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

load()?.start();

#!/usr/bin/env node
import module from 'node:module';

// Compiled code is kept from one start to the next (Node 22.1 and later): much of a cold start is compiling.
module.enableCompileCache?.();

try {
  const { main } = await import('../dist/cli.js');
  await main();
} catch (error) {
  if (error?.code !== 'ERR_MODULE_NOT_FOUND' || !String(error.url ?? error.message).includes('/dist/cli.js'))
    throw error;
  console.error(
    'mcp-portage is not built: dist/ is missing. In a clone run `npm ci`, which builds it, or `npm run build`.',
  );
  process.exitCode = 70;
}

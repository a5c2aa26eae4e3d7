/** Runs the program from its source, without a build: `npm start -- <arguments>`, and `npm run debug -- <arguments>`. */
import { main } from '../src/cli.ts';

// Nothing was bundled, so there is no compiled code to keep for the next start.
await main(() => undefined);

/** Runs the program from its source, without a build: `npm start -- <arguments>`, and `npm run debug -- <arguments>`. */
import { main } from '../src/cli.ts';

await main();

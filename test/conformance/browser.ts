/** A browser without a window, whose user agrees to everything: opens the address and goes where it is sent. */
const response = await fetch(process.argv[2] ?? '');
await response.text();

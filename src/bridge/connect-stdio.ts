import type { Config } from '../config.ts';
import type { Deps } from '../deps.ts';
import { StdioFace } from '../downstream/stdio.ts';
import { type BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { OpenCalls } from '../relay/open-calls.ts';
import { createDialer } from './create-dialer.ts';
import { createSessions } from './create-sessions.ts';
import type { ClientPipes, RunningBridge } from './running-bridge.ts';

/** `mcp-portage connect`: one client on a pair of pipes. */
export async function connectStdio(config: Config, deps: Deps, pipes: ClientPipes): Promise<RunningBridge> {
  const dialer = await createDialer(config, deps);
  const sessions = createSessions(config, { dialer, openCalls: new OpenCalls(config.limits.maxInFlight), deps });
  const { maxMessageBytes, maxJsonDepth } = config.limits;
  const face = new StdioFace({ ...pipes, sessions, deps, maxMessageBytes, maxJsonDepth });
  const shutdown = async (): Promise<void> => {
    // What was asked before the end of input is still answered.
    await sessions.drain(config.limits.shutdownGraceMs);
    // A client that has stopped reading does not hold up the end.
    await Promise.race([face.flush(), pause(config.limits.shutdownGraceMs, deps)]);
    sessions.close(SHUTTING_DOWN);
    await dialer.close();
  };
  const end = async (): Promise<BridgeError | undefined> => {
    const ended = await face.ended;
    await shutdown();
    return ended.kind === 'server' ? ended.reason : undefined;
  };
  return { urls: [], shutdown, killNow: () => dialer.killNow(), ended: end() };
}

function pause(ms: number, { clock }: Deps): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

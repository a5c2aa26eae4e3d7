import type { RecordingConfig } from '../../config/observation.ts';
import type { HttpRoute } from '../../downstream/listener/http-server.ts';
import type { MessageTaps } from '../../relay/message-tap.ts';
import type { BridgeDeps } from '../running-bridge.ts';

/** What records the messages of a bridge. */
export interface Recording {
  tapsOf(server: string): MessageTaps;
  /** Serves the live feed; undefined: there is none. */
  readonly feed: HttpRoute | undefined;
  reopen(): void;
  /** Ends the open feeds. */
  endWatching(): void;
  /** Writes remaining lines. Never rejects. */
  close(): Promise<void>;
}

/** Loads and creates what the configuration asks for. Rejects with ERR_CONFIG_OPTION if the file cannot be opened. */
export async function createRecording(
  { file, feed: feeds, maxMessageBytes }: RecordingConfig,
  { clock, log, wallClock }: BridgeDeps,
): Promise<Recording> {
  const [{ Recorder }, { RecordingFile }, { MessageFeed }] = await Promise.all([
    import('../../recording/recorder.ts'),
    import('../../recording/recording-file.ts'),
    import('../../recording/message-feed.ts'),
  ]);
  const format = { secrets: 'hidden', maxMessageBytes } as const;
  const feed = feeds === 'served' ? new MessageFeed({ format, clock }) : undefined;
  const recorded = file && (await RecordingFile.open({ ...file, format: { ...format, ...file }, clock, log }));
  const recorder = new Recorder({ clock, wallClock, sinks: [recorded ?? [], feed ?? []].flat() });
  return {
    tapsOf: (server) => recorder.tapsOf(server),
    feed: feed && ((_request, response) => feed.read(response)),
    reopen: () => recorded?.reopen(),
    endWatching: () => feed?.close(),
    close: async () => {
      recorder.flush();
      feed?.close();
      await recorded?.close();
    },
  };
}

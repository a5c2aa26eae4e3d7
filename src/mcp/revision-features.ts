import type { RevisionId } from './revisions.ts';

/** What messages of a legacy revision may say. How they travel: revisions.ts. */
export interface RevisionFeatures {
  /** Content of type `audio`. */
  readonly audio: boolean;
  /** Content of type `resource_link`. */
  readonly resourceLinks: boolean;
  /** `structuredContent` of tool results and the `outputSchema` it follows. An object in each of these revisions. */
  readonly structuredContent: boolean;
  /** The capability `completions`; before it, servers completed arguments without saying so. */
  readonly completionsCapability: boolean;
  /** `context` of `completion/complete`. */
  readonly completionContext: boolean;
  /** `form`: without modes, and answers hold no arrays. `modes`: forms and URLs. */
  readonly elicitation: 'none' | 'form' | 'modes';
  /** Tools in requests of `sampling/createMessage`, and several blocks in one message. */
  readonly samplingTools: boolean;
}

const features: Readonly<Record<RevisionId, RevisionFeatures>> = {
  '2024-11-05': {
    audio: false,
    resourceLinks: false,
    structuredContent: false,
    completionsCapability: false,
    completionContext: false,
    elicitation: 'none',
    samplingTools: false,
  },
  '2025-03-26': {
    audio: true,
    resourceLinks: false,
    structuredContent: false,
    completionsCapability: true,
    completionContext: false,
    elicitation: 'none',
    samplingTools: false,
  },
  '2025-06-18': {
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    completionsCapability: true,
    completionContext: true,
    elicitation: 'form',
    samplingTools: false,
  },
  '2025-11-25': {
    audio: true,
    resourceLinks: true,
    structuredContent: true,
    completionsCapability: true,
    completionContext: true,
    elicitation: 'modes',
    samplingTools: true,
  },
};

export function featuresOf(revision: RevisionId): RevisionFeatures {
  return features[revision];
}

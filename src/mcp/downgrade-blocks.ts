/** Blocks of content for clients of a revision that does not know their type. */
import { type Fields, showText } from './payload.ts';
import type { RevisionFeatures } from './revision-features.ts';

/**
 * Returns the block unchanged where the revision knows it. `index`: its position among its siblings, so that what gets
 * an address of its own gets one unlike theirs.
 */
export function downgradeBlock(block: Fields, features: RevisionFeatures, index: number): Fields {
  if (block.type === 'audio' && !features.audio) return audioAsResource(block, index);
  if (block.type === 'resource_link' && !features.resourceLinks) return linkAsText(block);
  return block;
}

export function textBlock(text: string): Fields {
  return { type: 'text', text };
}

/** [spec 2024-11-05 schema#embeddedresource] the one type of that revision that holds bytes of any kind. */
function audioAsResource({ data, mimeType, annotations }: Fields, index: number): Fields {
  const resource = { uri: `embedded:audio-${index + 1}`, mimeType, blob: data };
  return { type: 'resource', resource, ...(annotations !== undefined && { annotations }) };
}

function linkAsText({ name, title, uri, description, annotations }: Fields): Fields {
  const label = [title, name].find((text) => typeof text === 'string' && text !== '');
  const link = label === undefined ? showText(uri) : `${label}: ${showText(uri)}`;
  const text = typeof description === 'string' && description !== '' ? `${link}\n${description}` : link;
  return { ...textBlock(text), ...(annotations !== undefined && { annotations }) };
}

import { LF } from './ascii.ts';

function encodeEvent({ event, id, data }) {
  const eventField =
    event === void 0
      ? ''
      : `event: ${event}
`;
  const idField =
    id === void 0
      ? ''
      : `id: ${id}
`;
  const head = `${eventField}${idField}data: `;
  const headLength = Buffer.byteLength(head, 'utf8');
  const end = headLength + data.length;
  const bytes = Buffer.allocUnsafe(end + 2);
  bytes.write(head, 0, 'utf8');
  bytes.set(data, headLength);
  bytes[end] = LF;
  bytes[end + 1] = LF;
  return bytes;
}
const MESSAGE_DATA = Buffer.from('event: message\ndata: ');
const NUMBERED_DATA = Buffer.from('\ndata: ');
function encodeEvents(data) {
  const bytes = Buffer.allocUnsafe(lengthOf(data) + data.length * (MESSAGE_DATA.length + 2));
  let at = 0;
  for (const line of data) {
    at = putShort(bytes, at, MESSAGE_DATA);
    at = putLine(bytes, at, line);
  }
  return bytes;
}
function encodeNumberedEvents(idPrefix, first, data) {
  const head = Buffer.from(
    `event: message
id: ${idPrefix}`,
    'latin1',
  );
  const longestNumber = String(first + data.length - 1).length;
  const fieldsLength = head.length + longestNumber + NUMBERED_DATA.length + 2;
  const bytes = Buffer.allocUnsafe(lengthOf(data) + data.length * fieldsLength);
  let at = 0;
  let number = first;
  for (const line of data) {
    at = putShort(bytes, at, head);
    at = putNumber(bytes, at, number);
    at = putShort(bytes, at, NUMBERED_DATA);
    at = putLine(bytes, at, line);
    number += 1;
  }
  return bytes.subarray(0, at);
}
function lengthOf(data) {
  let length = 0;
  for (const line of data) length += line.length;
  return length;
}
function putShort(bytes, start, text) {
  for (let index = 0; index < text.length; index++) bytes[start + index] = text[index];
  return start + text.length;
}
function putNumber(bytes, start, number) {
  const digits = String(number);
  for (let index = 0; index < digits.length; index++) bytes[start + index] = digits.charCodeAt(index);
  return start + digits.length;
}
function putLine(bytes, start, line) {
  bytes.set(line, start);
  const end = start + line.length;
  bytes[end] = LF;
  bytes[end + 1] = LF;
  return end + 2;
}
function skipEvents(events, count) {
  let at = 0;
  for (let skipped = 0; skipped < count; skipped++) at = events.indexOf('\n\n', at) + 2;
  return at;
}
function encodeComment(text) {
  return Buffer.from(`: ${text}

`);
}
function encodeRetry(ms) {
  return Buffer.from(`retry: ${ms}

`);
}
function encodePriming(id, retryMs) {
  const retryField =
    retryMs === void 0
      ? ''
      : `retry: ${retryMs}
`;
  return Buffer.from(`id: ${id}
${retryField}data:

`);
}

export { encodeComment, encodeEvent, encodeEvents, encodeNumberedEvents, encodePriming, encodeRetry, skipEvents };
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsic3NlLWVuY29kZS50cyJdLAogICJtYXBwaW5ncyI6ICJBQUVBLFNBQVMsVUFBVTtBQVlaLFNBQVMsWUFBWSxFQUFFLE9BQU8sSUFBSSxLQUFLLEdBQXdCO0FBQ3BFLFFBQU0sYUFBYSxVQUFVLFNBQVksS0FBSyxVQUFVLEtBQUs7QUFBQTtBQUM3RCxRQUFNLFVBQVUsT0FBTyxTQUFZLEtBQUssT0FBTyxFQUFFO0FBQUE7QUFDakQsUUFBTSxPQUFPLEdBQUcsVUFBVSxHQUFHLE9BQU87QUFDcEMsUUFBTSxhQUFhLE9BQU8sV0FBVyxNQUFNLE1BQU07QUFDakQsUUFBTSxNQUFNLGFBQWEsS0FBSztBQUM5QixRQUFNLFFBQVEsT0FBTyxZQUFZLE1BQU0sQ0FBQztBQUN4QyxRQUFNLE1BQU0sTUFBTSxHQUFHLE1BQU07QUFDM0IsUUFBTSxJQUFJLE1BQU0sVUFBVTtBQUMxQixRQUFNLEdBQUcsSUFBSTtBQUNiLFFBQU0sTUFBTSxDQUFDLElBQUk7QUFDakIsU0FBTztBQUNUO0FBTUEsTUFBTSxlQUFlLE9BQU8sS0FBSyx3QkFBd0I7QUFDekQsTUFBTSxnQkFBZ0IsT0FBTyxLQUFLLFVBQVU7QUFHckMsU0FBUyxhQUFhLE1BQWlDO0FBQzVELFFBQU0sUUFBUSxPQUFPLFlBQVksU0FBUyxJQUFJLElBQUksS0FBSyxVQUFVLGFBQWEsU0FBUyxFQUFFO0FBQ3pGLE1BQUksS0FBSztBQUNULGFBQVcsUUFBUSxNQUFNO0FBQ3ZCLFNBQUssU0FBUyxPQUFPLElBQUksWUFBWTtBQUNyQyxTQUFLLFFBQVEsT0FBTyxJQUFJLElBQUk7QUFBQSxFQUM5QjtBQUNBLFNBQU87QUFDVDtBQUdPLFNBQVMscUJBQXFCLFVBQWtCLE9BQWUsTUFBaUM7QUFDckcsUUFBTSxPQUFPLE9BQU8sS0FBSztBQUFBLE1BQXVCLFFBQVEsSUFBSSxRQUFRO0FBQ3BFLFFBQU0sZ0JBQWdCLE9BQU8sUUFBUSxLQUFLLFNBQVMsQ0FBQyxFQUFFO0FBQ3RELFFBQU0sZUFBZSxLQUFLLFNBQVMsZ0JBQWdCLGNBQWMsU0FBUztBQUMxRSxRQUFNLFFBQVEsT0FBTyxZQUFZLFNBQVMsSUFBSSxJQUFJLEtBQUssU0FBUyxZQUFZO0FBQzVFLE1BQUksS0FBSztBQUNULE1BQUksU0FBUztBQUNiLGFBQVcsUUFBUSxNQUFNO0FBQ3ZCLFNBQUssU0FBUyxPQUFPLElBQUksSUFBSTtBQUM3QixTQUFLLFVBQVUsT0FBTyxJQUFJLE1BQU07QUFDaEMsU0FBSyxTQUFTLE9BQU8sSUFBSSxhQUFhO0FBQ3RDLFNBQUssUUFBUSxPQUFPLElBQUksSUFBSTtBQUM1QixjQUFVO0FBQUEsRUFDWjtBQUNBLFNBQU8sTUFBTSxTQUFTLEdBQUcsRUFBRTtBQUM3QjtBQUVBLFNBQVMsU0FBUyxNQUFpQztBQUNqRCxNQUFJLFNBQVM7QUFDYixhQUFXLFFBQVEsS0FBTSxXQUFVLEtBQUs7QUFDeEMsU0FBTztBQUNUO0FBR0EsU0FBUyxTQUFTLE9BQWUsT0FBZSxNQUFzQjtBQUNwRSxXQUFTLFFBQVEsR0FBRyxRQUFRLEtBQUssUUFBUSxRQUFTLE9BQU0sUUFBUSxLQUFLLElBQUksS0FBSyxLQUFLO0FBQ25GLFNBQU8sUUFBUSxLQUFLO0FBQ3RCO0FBRUEsU0FBUyxVQUFVLE9BQWUsT0FBZSxRQUF3QjtBQUN2RSxRQUFNLFNBQVMsT0FBTyxNQUFNO0FBQzVCLFdBQVMsUUFBUSxHQUFHLFFBQVEsT0FBTyxRQUFRLFFBQVMsT0FBTSxRQUFRLEtBQUssSUFBSSxPQUFPLFdBQVcsS0FBSztBQUNsRyxTQUFPLFFBQVEsT0FBTztBQUN4QjtBQUVBLFNBQVMsUUFBUSxPQUFlLE9BQWUsTUFBc0I7QUFDbkUsUUFBTSxJQUFJLE1BQU0sS0FBSztBQUNyQixRQUFNLE1BQU0sUUFBUSxLQUFLO0FBQ3pCLFFBQU0sR0FBRyxJQUFJO0FBQ2IsUUFBTSxNQUFNLENBQUMsSUFBSTtBQUNqQixTQUFPLE1BQU07QUFDZjtBQUdPLFNBQVMsV0FBVyxRQUFnQixPQUF1QjtBQUNoRSxNQUFJLEtBQUs7QUFDVCxXQUFTLFVBQVUsR0FBRyxVQUFVLE9BQU8sVUFBVyxNQUFLLE9BQU8sUUFBUSxRQUFRLEVBQUUsSUFBSTtBQUNwRixTQUFPO0FBQ1Q7QUFHTyxTQUFTLGNBQWMsTUFBc0I7QUFDbEQsU0FBTyxPQUFPLEtBQUssS0FBSyxJQUFJO0FBQUE7QUFBQSxDQUFNO0FBQ3BDO0FBR08sU0FBUyxZQUFZLElBQW9CO0FBQzlDLFNBQU8sT0FBTyxLQUFLLFVBQVUsRUFBRTtBQUFBO0FBQUEsQ0FBTTtBQUN2QztBQU1PLFNBQVMsY0FBYyxJQUFZLFNBQTBCO0FBQ2xFLFFBQU0sYUFBYSxZQUFZLFNBQVksS0FBSyxVQUFVLE9BQU87QUFBQTtBQUNqRSxTQUFPLE9BQU8sS0FBSyxPQUFPLEVBQUU7QUFBQSxFQUFLLFVBQVU7QUFBQTtBQUFBLENBQVc7QUFDeEQ7IiwKICAibmFtZXMiOiBbXQp9Cg==
//IIbLKa7VYsO_qEHLacAQdkk_VuVy3syTTgG1Xbs_Xwo

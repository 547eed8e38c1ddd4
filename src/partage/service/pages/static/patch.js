// Following a snapshot: the server sends it whole first, and then what changed.
const MOST = 40; // sentences of the feed

// Apply a JSON Patch (RFC 6902) whose operations all replace a value that is there. What it was made of stays as it was.
export const patched = (whole, operations) =>
  operations.reduce((part, { path, value }) => replaced(part, path.split("/").slice(1), value), whole);

function replaced(part, [step, ...rest], value) {
  if (step === undefined) return value;
  const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
  if (!Object.hasOwn(part, name)) throw new Error(`nothing to replace at ${name}`);
  const copy = Array.isArray(part) ? part.slice() : { ...part };
  copy[name] = replaced(part[name], rest, value);
  return copy;
}

export function next(snapshot, { board, rest, said, skip }) {
  return {
    ...patched(snapshot, rest),
    board: board.reduce(patched, snapshot.board),
    feed: [...said, ...snapshot.feed.slice(skip)].slice(0, MOST),
  };
}

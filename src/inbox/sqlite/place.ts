import { statSync } from 'node:fs'

/**
 * Remembers which file is at a path. The function that it returns says whether that file is still there, and takes some
 * microseconds. It says so too while the path cannot be read, and if the file system gives files no number.
 */
export function watchPlace(path: string): () => boolean {
  const opened = fileAt(path)
  return () => {
    if (!opened?.ino) return true
    const found = fileAt(path)
    return found === undefined || (found.ino === opened.ino && found.dev === opened.dev)
  }
}

const noFile = { dev: 0n, ino: 0n }

/** Returns the numbers of the file at a path; `undefined` if they cannot be read now. */
function fileAt(path: string): { readonly dev: bigint; readonly ino: bigint } | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? noFile
  } catch {
    return undefined
  }
}

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'

/**
 * Lists the source files through which a delivery passes between Express and the handler.
 * @param place the URL of the inbox's database, or the path of its file. It is in memory if there is none
 */
export async function filesBeforeHandler(place?: string): Promise<readonly string[]> {
  const script = fileURLToPath(new URL('./files-on-the-path.ts', import.meta.url))
  const options = place === undefined ? [] : [place]
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script, ...options])
  const files: string[] = JSON.parse(stdout)
  // Both ends, so that an empty measurement does not pass.
  expect(files).toContainEqual(expect.stringMatching(/^adapters\//))
  expect(files).toContainEqual(expect.stringMatching(/^src\/receiver\//))
  expect(files).toContainEqual(expect.stringMatching(/^src\/handlers\//))
  return files
}

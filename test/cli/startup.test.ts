import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

/** Lists every file and package that the program loads before it reads its command line. */
async function loadedAtStart(): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: ['src/cli/main.ts'],
    absWorkingDir: fileURLToPath(new URL('../../', import.meta.url)),
    outdir: 'nowhere',
    write: false,
    bundle: true,
    metafile: true,
    platform: 'node',
    format: 'esm',
    splitting: true,
    packages: 'external',
  })
  const loaded = new Set(['src/cli/main.ts'])
  for (const file of loaded) {
    for (const { path, kind } of metafile.inputs[file]?.imports ?? []) if (kind !== 'dynamic-import') loaded.add(path)
  }
  return [...loaded]
}

test('Other commands do not load the API and page of the emulator, or their framework', async () => {
  const loaded = await loadedAtStart()
  expect(loaded).toContain('src/cli/commands/emulate.ts')
  expect(loaded.filter((path) => /hono|^src\/emulator\/(api|page|control)\//.test(path))).toEqual([])
})

test('Only the inbox command loads SQLite, and only when it runs', async () => {
  const loaded = await loadedAtStart()
  expect(loaded).toContain('src/cli/commands/inbox.ts')
  expect(loaded.filter((path) => /sqlite|libsql/.test(path))).toEqual([])
})

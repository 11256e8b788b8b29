import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type BuildOptions, build } from 'esbuild'
import ts from 'typescript'
import { describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { temporaryFolder } from '../support/temporary-folder.ts'
import { bundles } from './bundle-programs.ts'

const run = promisify(execFile)
const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))
const formats = ['esm', 'cjs'] as const

async function bundle(
  contents: string,
  options: BuildOptions,
): Promise<{ code: string; warnings: readonly unknown[] }> {
  const stdin = { contents, resolveDir: inject('userFolder') }
  const { outputFiles, warnings } = await build({ stdin, bundle: true, write: false, platform: 'node', ...options })
  return { code: outputFiles?.[0]?.text ?? '', warnings }
}

/** A folder without any module but these. */
async function folderWith(installed: readonly string[] = []): Promise<string> {
  const folder = await temporaryFolder()
  await mkdir(join(folder, 'node_modules'))
  for (const name of installed) await symlink(join(modules, name), join(folder, 'node_modules', name), 'dir')
  return folder
}

test('every entry has a program', () => {
  const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
  expect(Object.keys(bundles)).toEqual(entries)
})

describe.each(Object.entries(bundles))('a bundle with the entry %s', (_, { program, external = [], prints }) => {
  test.each(formats)('runs away from node_modules, as %s', async (format) => {
    const { code, warnings } = await bundle(program, { format, external: [...external] })
    const folder = await folderWith(external)
    const file = format === 'esm' ? 'program.mjs' : 'program.cjs'
    await writeFile(join(folder, file), code)
    const { stdout } = await run(process.execPath, ['--no-warnings', file], { cwd: folder, timeout: 120_000 })
    expect([stdout.trim(), warnings]).toEqual([prints, []])
  })
})

/** `true` for a module that reads `import.meta` outside of its functions. */
function readsImportMetaAtOnce(path: string): boolean {
  const text = readFileSync(join(inject('userFolder'), 'node_modules/media-webhooks', path), 'utf8')
  const reads = (node: ts.Node): boolean =>
    ts.isMetaProperty(node) || (!ts.isFunctionLike(node) && (ts.forEachChild(node, reads) ?? false))
  return reads(ts.createSourceFile(path, text, ts.ScriptTarget.Latest))
}

test('no module reads import.meta while it loads: in a CommonJS bundle there is none', () => {
  const esModules = inject('packedFiles').filter((path) => /^dist\/.*\.js$/.test(path))
  expect(esModules.filter(readsImportMetaAtOnce)).toEqual([])
})

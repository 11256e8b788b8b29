import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, inject, test } from 'vitest'

/** Every module that an entry of the installed package reaches, and every import that a bundler could not resolve. */
async function moduleGraph(entry: string) {
  const { metafile } = await build({
    stdin: { contents: `export * from '${entry}'`, resolveDir: inject('userFolder') },
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    // No platform and no condition besides `import` and `default`: the modules that an unforeseen runtime would
    // resolve.
    platform: 'neutral',
    conditions: [],
    external: ['node:*'],
    absWorkingDir: inject('userFolder'),
  })
  const modules = Object.keys(metafile.inputs).filter((path) => path !== '<stdin>')
  const imports = modules.flatMap((path) => metafile.inputs[path]?.imports.map((each) => ({ ...each, by: path })) ?? [])
  return { modules, external: imports.filter(({ external }) => external) }
}

test.each([
  'media-webhooks',
  'media-webhooks/fetch',
  'media-webhooks/cloudflare',
  'media-webhooks/client',
  'media-webhooks/dashboard',
  'media-webhooks/idempotency/redis',
])('%s runs without Node: it reaches no built-in', async (entry) => {
  const { external } = await moduleGraph(entry)
  // lru-cache tries to import node:diagnostics_channel, and works without it if that fails.
  const needed = external.filter(
    ({ by, kind }) => !(by.includes('node_modules/lru-cache/') && kind === 'dynamic-import'),
  )
  expect(needed).toEqual([])
})

test.each([
  'media-webhooks',
  'media-webhooks/fetch',
  'media-webhooks/cloudflare',
  'media-webhooks/testing',
  'media-webhooks/client',
  'media-webhooks/dashboard',
  'media-webhooks/idempotency/redis',
])('%s reaches its dependencies and no peer', async (entry) => {
  const { modules } = await moduleGraph(entry)
  const packages = new Set(modules.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path))
  expect([...packages]).toEqual(expect.arrayContaining(['media-webhooks']))
  expect(['lru-cache', 'media-webhooks', 'zod']).toEqual(expect.arrayContaining([...packages]))
})

test('the default entry reaches neither an adapter nor what only helps to develop', async () => {
  const { modules } = await moduleGraph('media-webhooks')
  expect(
    modules.filter((path) => /dist\/(adapters|src\/(client|dashboard|emulator|page|cli|testing))\//.test(path)),
  ).toEqual([])
})

test('#crypto is node:crypto on Node and WebCrypto if no condition names Node', async () => {
  const { modules } = await moduleGraph('media-webhooks')
  expect(modules).toContain('node_modules/media-webhooks/dist/src/internal/crypto/web.js')
  const { imports } = createRequire(join(inject('userFolder'), 'package.json'))('media-webhooks/package.json')
  expect(imports['#crypto'].node).toEqual({
    import: './dist/src/internal/crypto/node.js',
    require: './dist/src/internal/crypto/node.cjs',
  })
})

import { copyFile, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { defineConfig, type Rolldown } from 'tsdown'
import { sourcesIn } from './entries.ts'
import manifest from './package.json' with { type: 'json' }

const library = modules(manifest.exports, manifest.imports)

/** Built into the dashboard and the emulator, so that a user who only receives installs neither. */
const thirdParty = ['hono', '@hono/node-server']

export default defineConfig({
  entry: library,
  // Nobody requires the command line.
  format: { esm: { entry: { ...library, ...modules(manifest.bin) } }, cjs: { entry: library } },
  platform: 'neutral',
  // One file a module, so that a stack trace names files that can be found here.
  unbundle: true,
  target: 'es2023',
  dts: true,
  report: false,
  deps: {
    // Resolved in the user's runtime: node:crypto on Node, WebCrypto elsewhere.
    neverBundle: ['#crypto', /^node:/],
    // The adapter's types name the Hono of its user.
    alwaysBundle: (id, importer) => /^(@hono\/node-server|hono)(\/|$)/.test(id) && !importer?.includes('/adapters/'),
    onlyBundle: thirdParty,
  },
  plugins: [inlineTexts()],
  outputOptions: ({ entryFileNames, ...options }) => ({
    ...options,
    entryFileNames: ({ name }) => String(entryFileNames).replace('[name]', placeOf(name)),
  }),
  hooks: { 'build:done': copyLicenses },
})

/** Source files by where they go in dist/. */
function modules(...parts: object[]): Record<string, string> {
  return Object.fromEntries(sourcesIn(parts).map((source) => [source.replace(/\.ts$/, ''), source]))
}

/** Where in dist/ a module goes; npm packs no folder that is named node_modules. */
function placeOf(module: string): string {
  if (module === 'package.json') return 'src/cli/package.json'
  return module.replace(/^.*node_modules\/((?:@[^/]+\/)?[^/]+)\/dist\//, 'third-party/$1/')
}

async function copyLicenses(): Promise<void> {
  for (const name of thirdParty) await copyFile(`node_modules/${name}/LICENSE`, `dist/third-party/${name}/LICENSE`)
}

/** Replaces the reading of a file that lies beside a module by the file's text, so that a bundle needs no other file. */
function inlineTexts(): Rolldown.Plugin {
  const reading = /readFileSync\(new URL\('([^']+)', import\.meta\.url\), 'utf8'\)/
  return {
    name: 'inline-texts',
    transform: {
      filter: { code: reading },
      async handler(code, id) {
        const parts = code.split(reading)
        const texts = parts.map((part, index) => (index % 2 === 0 ? part : readFile(join(dirname(id), part), 'utf8')))
        const inlined = await Promise.all(texts)
        const inlinedCode = inlined.map((text, index) => (index % 2 === 0 ? text : JSON.stringify(text))).join('')
        // Nothing else reads files in these modules, so that they also run where there are none.
        return inlinedCode.replace(/import \{ readFileSync \} from 'node:fs';?\n/, '')
      },
    },
  }
}

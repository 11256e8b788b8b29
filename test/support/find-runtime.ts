import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { canTest } from './can-test.ts'
import { runs } from './runs.ts'

const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))

/** The path of the binary in the npm package of each runtime. Bun's install script, if it runs, moves the binary. */
const binaries = {
  bun: ['bun/bin/bun.exe', '@oven/*/bin/bun'],
  deno: ['@deno/*/deno'],
  workerd: ['@cloudflare/*/bin/workerd'],
} as const

/** Finds the binary of a runtime. Returns `undefined` if its tests are skipped, because none runs on this machine. */
export function findRuntime(name: keyof typeof binaries): string | undefined {
  const binary = binaries[name].flatMap(matching).find(runs)
  canTest(binary !== undefined, `${name} does not run here`, 'run npm ci')
  return binary
}

/** Lists the files that match a pattern, in which a star stands for the folder of a platform. */
function matching(pattern: string): string[] {
  const [scope = '', path] = pattern.split('/*/')
  if (path === undefined) return [join(modules, pattern)]
  const folder = join(modules, scope)
  return existsSync(folder) ? readdirSync(folder).map((platform) => join(folder, platform, path)) : []
}

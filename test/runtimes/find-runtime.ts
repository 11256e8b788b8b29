import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))

/** Where the npm packages of the runtimes keep the binary; bun's moves its own where install scripts run. */
const binaries = {
  bun: ['bun/bin/bun.exe', '@oven/*/bin/bun'],
  deno: ['@deno/*/deno'],
  workerd: ['@cloudflare/*/bin/workerd'],
} as const

/**
 * The binary of a runtime. `undefined`, with a message, on a machine for which there is none; a CI machine has to have
 * it, since a test that is skipped there proves nothing.
 */
export function findRuntime(name: keyof typeof binaries): string | undefined {
  const binary = binaries[name].flatMap(matching).find(runs)
  if (binary !== undefined) return binary
  if (process.env['CI']) throw new Error(`${name} does not run here; npm ci should have installed it`)
  console.warn(`${name} does not run on this machine: its tests are skipped`)
  return undefined
}

/** The files of a pattern whose star stands for the folder of one platform. */
function matching(pattern: string): string[] {
  const [scope = '', path] = pattern.split('/*/')
  if (path === undefined) return [join(modules, pattern)]
  const folder = join(modules, scope)
  return existsSync(folder) ? readdirSync(folder).map((platform) => join(folder, platform, path)) : []
}

function runs(binary: string): boolean {
  try {
    execFileSync(binary, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

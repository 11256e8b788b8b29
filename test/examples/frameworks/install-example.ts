import { type ExecFileOptions, execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, inject } from 'vitest'

const run = promisify(execFile)
const fixtures = fileURLToPath(new URL('fixtures/', import.meta.url))

/** The environment of a build: no secret of the example is among it. */
const buildEnvironment = { PATH: process.env['PATH'], HOME: process.env['HOME'], CI: 'true', NO_COLOR: '1' }

/** An example that was installed. */
export interface InstalledExample {
  /** Its folder. */
  readonly folder: string
  /** Runs a script of its package.json, without any variable that the example needs. Resolves with what it has written. */
  script(name: string): Promise<string>
}

interface ExampleOptions {
  readonly handlers?: string
  readonly besides?: string
  readonly packages?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Copies an example to a folder of its own, and installs it there with npm and the packed package. It is removed after the
 * tests of the file.
 * @param handlers the path of the example's handlers in its folder. They are replaced by `fixtures/handlers.ts`, which records events
 * @param besides a folder of `fixtures/`, whose files are added to the example
 * @param packages what is installed besides its dependencies, as npm takes them
 * @param env more variables for npm
 */
export async function installExample(name: string, options: ExampleOptions): Promise<InstalledExample> {
  const { handlers, besides, packages = [], env } = options
  const npm = (...args: string[]) => runNpm(args, { cwd: folder, env: { ...buildEnvironment, ...env } })
  const folder = await mkdtemp(join(tmpdir(), `media-webhooks-${name}-`))
  afterAll(() => rm(folder, { recursive: true }))
  const source = fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url))
  const isOurs = (path: string) => !/\/(node_modules|\.next|\.nuxt|\.output|\.svelte-kit|build|dist)$/.test(path)
  await cp(source, folder, { recursive: true, filter: isOurs })
  if (handlers !== undefined) await cp(join(fixtures, 'handlers.ts'), join(folder, handlers))
  if (besides !== undefined) await cp(join(fixtures, besides), folder, { recursive: true })
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  manifest.dependencies['media-webhooks'] = `file:${inject('tarball')}`
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await npm('install', '--no-audit', '--no-fund', '--prefer-offline', ...packages)
  return { folder, script: (script) => npm('run', script) }
}

async function runNpm(args: readonly string[], options: ExecFileOptions): Promise<string> {
  const running = run('npm', args, { ...options, encoding: 'utf8', maxBuffer: 2 ** 24 })
  const { stdout, stderr } = await running.catch((error) => {
    throw new Error(`npm ${args.join(' ')} failed:\n${error.stdout}${error.stderr}`)
  })
  return `${stdout}${stderr}`
}

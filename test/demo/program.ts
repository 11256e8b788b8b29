import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const root = new URL('../../', import.meta.url)
const { PATH } = process.env

/** Starts the program of `npm start`. It is killed at the end of the test. */
export function start(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'demo/main.ts', ...args], {
    cwd: root,
    // Only PATH, because the environment may hold the test runner's colour settings.
    env: { PATH, WEBHOOK_TOKEN: "a secret, 'quoted' & 100%", ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Runs the program to its end. */
export async function run(args: readonly string[], env?: NodeJS.ProcessEnv) {
  const child = start(args, env)
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (output.stdout += chunk))
  child.stderr.on('data', (chunk) => (output.stderr += chunk))
  const [status] = await once(child, 'close')
  return { ...output, status, lines: output.stdout.split('\n') }
}

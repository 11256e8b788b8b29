import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { type Program, startProgram } from '../support/program.ts'

/** Bundles a worker as wrangler does, and runs it in workerd with these variables. */
export async function startWorkerd(
  workerd: string,
  folder: string,
  entry: string,
  variables: Record<string, string> = {},
): Promise<Program> {
  const cwd = join(folder, 'bundle')
  await mkdir(cwd)
  await build({
    entryPoints: [join(folder, entry)],
    outfile: join(cwd, 'worker.js'),
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
  })
  const template = await readFile(new URL('workerd.capnp', import.meta.url), 'utf8')
  const bindings = Object.entries(variables).map(([name, text]) => `(name = "${name}", text = "${text}")`)
  await writeFile(join(cwd, 'workerd.capnp'), template.replace('bindings = []', `bindings = [${bindings.join(', ')}]`))
  // It reports the port it was given as a line of JSON on the file descriptor it is told.
  const args = ['serve', 'workerd.capnp', '--verbose', '--control-fd=1']
  return startProgram(workerd, args, { cwd }, /"event":"listen".*"port":(\d+)/)
}

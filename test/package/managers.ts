import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)

/** A package manager, and the command by which it installs packages into a folder. */
export interface PackageManager {
  readonly name: string
  readonly add: readonly string[]
}

export const managers: readonly PackageManager[] = [
  { name: 'npm', add: ['npm', 'install', '--no-audit', '--no-fund'] },
  { name: 'pnpm', add: ['npx', '-y', 'pnpm@10', 'add'] },
  // It refuses what newer versions of Node are for, also deep in the tree of a framework.
  { name: 'Yarn 1', add: ['npx', '-y', 'yarn@1.22', 'add', '--ignore-engines'] },
]

/**
 * Installs packages into a new project, whose folder is removed with the test.
 * @param registry the registry that npm uses; Yarn 1 asks one of its own unless told otherwise
 * @returns the folder, and what the package manager printed
 */
export async function installWith({ add }: PackageManager, registry: string, packages: readonly string[]) {
  const cwd = await temporaryFolder()
  const project = { name: 'empty', version: '1.0.0', private: true, type: 'module' }
  await writeFile(join(cwd, 'package.json'), JSON.stringify(project))
  const env = { ...process.env, npm_config_registry: registry, npm_config_update_notifier: 'false' }
  const [installer = '', ...args] = add
  const { stdout, stderr } = await run(installer, [...args, ...packages], { cwd, env, timeout: 120_000 })
  return { cwd, printed: stdout + stderr }
}

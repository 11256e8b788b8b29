import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What the build reads. */
const sources = ['src', 'adapters', 'package.json', 'tsconfig.json', 'tsdown.config.ts', 'entries.ts']

/**
 * Builds the package as it is in the working tree, in a temporary folder, so that `dist/` stays, and edits during a run do
 * not count. Returns the folder.
 */
export function buildWorkingTree(): string {
  const folder = mkdtempSync(join(tmpdir(), 'media-webhooks-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  copyWorkingTree(folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const tsdown = join(root, 'node_modules/.bin/tsdown')
  execFileSync(tsdown, ['--no-dts', '--format', 'esm'], { cwd: folder, stdio: 'pipe' })
  return folder
}

function copyWorkingTree(folder: string): void {
  const options = ['--cached', '--others', '--exclude-standard', '-z']
  const listed = execFileSync('git', ['ls-files', ...options, ...sources], { cwd: root, encoding: 'utf8' })
  for (const path of listed.split('\0')) {
    // A deleted file stays in git's list until the deletion is staged.
    if (path === '' || !existsSync(join(root, path))) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(root, path), join(folder, path))
  }
}

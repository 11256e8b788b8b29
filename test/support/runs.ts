import { execFileSync } from 'node:child_process'

/** Returns true if a program starts. */
export function runs(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

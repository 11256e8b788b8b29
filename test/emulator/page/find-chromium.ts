import { accessSync, constants } from 'node:fs'

const places = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/**
 * Finds a Chromium on this machine. Without one it prints a message and returns `undefined`. In CI it throws, because a
 * skipped test proves nothing there.
 */
export function findChromium(): string | undefined {
  const found = places.find((place) => place !== undefined && canBeRun(place))
  if (found !== undefined) return found
  if (process.env['CI'])
    throw new Error('there is no Chromium on this machine: install the package chromium, or set CHROMIUM_PATH')
  console.warn('there is no Chromium on this machine: the tests of the page are skipped (set CHROMIUM_PATH)')
  return undefined
}

function canBeRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

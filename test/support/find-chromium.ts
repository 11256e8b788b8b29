import { accessSync, constants } from 'node:fs'
import { canTest } from './can-test.ts'

const places = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Finds a Chromium on this machine. Returns `undefined` if the tests of the page are skipped without one. */
export function findChromium(): string | undefined {
  const found = places.find((place) => place !== undefined && canBeRun(place))
  canTest(found !== undefined, 'There is no Chromium here', 'install the package chromium, or set CHROMIUM_PATH')
  return found
}

function canBeRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

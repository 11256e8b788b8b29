import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { findChromium } from '../../test/support/find-chromium.ts'
import { showDashboard } from './dashboard.ts'
import { showEmulator } from './emulator.ts'

// Takes the pictures of the pages in docs/: of those that are named, or of all. Those of the dashboard come out the same for
// each build of the site until the dashboard changes; the emulator's show times and ids that are never the same.

const pictures = { dashboard: [showDashboard, 1200], emulator: [showEmulator, 1000] } as const

const executablePath = findChromium()
if (executablePath === undefined) {
  console.error('The pictures of the site are taken with Chromium: install the package chromium, or set CHROMIUM_PATH')
  process.exit(1)
}
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
const named = process.argv.slice(2)
for (const [name, [show, height]] of Object.entries(pictures)) {
  if (named.length > 0 && !named.includes(name)) continue
  const shown = await show()
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1360, height }, colorScheme })
    await page.goto(shown.url)
    await page.getByText('● live').waitFor()
    await shown.prepare?.(page)
    await page.screenshot({ path: fileURLToPath(new URL(`../${name}-${colorScheme}.png`, import.meta.url)) })
    await page.close()
  }
  await shown.close()
}
await browser.close()

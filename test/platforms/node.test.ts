import { nodeProgram } from './node-program.ts'
import { provePlatform } from './prove-platform.ts'

provePlatform('node memory', nodeProgram('node', 'memory'))
provePlatform('node sqlite', nodeProgram('node', 'sqlite'))

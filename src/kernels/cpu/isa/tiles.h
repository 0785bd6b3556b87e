// Tile registers (AMX): eight of them, all with 16 rows of 64 bytes. For sources of the level
// avx512; kernels/cpu/tiles.h says whether the processor and the system have them.
#ifndef RUNNEL_KERNELS_CPU_ISA_TILES_H_
#define RUNNEL_KERNELS_CPU_ISA_TILES_H_

#include <immintrin.h>
#include <stdint.h>

typedef struct __attribute__((packed)) rn_tile_config_t {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} rn_tile_config_t;

// A constant: compilers think that the instruction reads only the first bytes of it.
static const rn_tile_config_t rn_tile_config = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

__attribute__((target("amx-tile"))) static void rn_tiles_begin(void) {
  _tile_loadconfig(&rn_tile_config);
}
__attribute__((target("amx-tile"))) static void rn_tiles_end(void) { _tile_release(); }

#endif  // RUNNEL_KERNELS_CPU_ISA_TILES_H_

// Kernels that are compiled for the microscope; each is launched once. `to` and `from` are device
// memory.
#pragma once

void run_copy(const float* from, float* to, int offset, int stride);
void run_copy_fours(const float* from, float* to);
void run_shared_stride(float* to, int stride);
void run_shared_wide(float* to, int bytes, int group, int apart);
void run_shared_few(float* to);
enum class Between { nothing, store, copy };
void run_add_neighbours(const float* from, float* to, bool padded, Between between);
void run_transpose(const float* from, float* to, bool padded);
void run_probe(const int* table, int* to);
void run_look_up(const int* table, int* to);
void run_skip_odd(const float* from, float* to);
void run_add(float* to, int addresses);
void run_neighbours(float* to, bool barrier);
void run_lanes_exchange(float* to, bool meet);
void run_blocks_store(float* to);
void run_all_store_one(float* to);
void run_never_written(float* to);
void run_pipeline_fours(const float* from, float* to, int offset);
void run_multiply(float* to);
void run_tell_in_cluster(float* to, bool releases);
void run_exchange_in_cluster(float* to, bool waits, bool early);
void run_share_in_cluster(const float* from, float* to, bool waits);
void run_pipeline(const float* from, float* to, int read, bool wait);
